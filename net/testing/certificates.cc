#include "net/testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>

#include "base/file.h"

namespace ag {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { ::X509_free(certificate); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Certificate = std::unique_ptr<X509, FreeCertificate>;

Key NewKey() {
  Key key(::EVP_EC_gen("P-256"));
  AG_CHECK(key != nullptr);
  return key;
}

void Extend(X509& certificate, int what, const char* value) {
  X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
  AG_CHECK(extension != nullptr);
  AG_CHECK(::X509_add_ext(&certificate, extension, -1) == 1);
  ::X509_EXTENSION_free(extension);
}

Certificate NewCertificate(const std::string& name, EVP_PKEY& key,
                           const TestAuthority::Validity& validity) {
  static long serial = 0;
  Certificate made(::X509_new());
  AG_CHECK(made != nullptr);
  ::X509_set_version(made.get(), 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), ++serial);
  ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), validity.begins_in_seconds);
  ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), validity.ends_in_seconds);
  AG_CHECK(::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                                        reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                                        -1, 0) == 1);
  AG_CHECK(::X509_set_pubkey(made.get(), &key) == 1);
  return made;
}

void Sign(X509& certificate, const X509& issuer, EVP_PKEY& key) {
  ::X509_set_issuer_name(&certificate, ::X509_get_subject_name(&issuer));
  AG_CHECK(::X509_sign(&certificate, &key, ::EVP_sha256()) > 0);
}

// Writes what `print` prints.
void Write(const std::string& path, const std::function<int(BIO*)>& print) {
  BIO* bio = ::BIO_new(::BIO_s_mem());
  AG_CHECK(print(bio) == 1);
  char* text = nullptr;
  const long size = ::BIO_get_mem_data(bio, &text);
  AG_CHECK(WriteFileAtomically(path, {text, static_cast<size_t>(size)}).ok());
  ::BIO_free(bio);
}

void WriteCertificate(const std::string& path, X509& certificate) {
  Write(path, [&](BIO* bio) { return ::PEM_write_bio_X509(bio, &certificate); });
}

}  // namespace

struct TestAuthority::State {
  Key key = NewKey();
  Certificate certificate;
};

TestAuthority::TestAuthority(const std::string& folder, const std::string& name)
    : folder_(folder), ca_(folder + "/" + name + "-ca.crt"), state_(std::make_unique<State>()) {
  state_->certificate = NewCertificate(name, *state_->key, {-7200, 7200});
  Extend(*state_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  Sign(*state_->certificate, *state_->certificate, *state_->key);
  WriteCertificate(ca_, *state_->certificate);
}

TestAuthority::~TestAuthority() = default;

TlsFiles TestAuthority::Make(const std::string& name, const Validity& validity) {
  const Key key = NewKey();
  const Certificate made = NewCertificate(name, *key, validity);
  Extend(*made, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  Sign(*made, *state_->certificate, *state_->key);
  TlsFiles files;
  files.cert = folder_ + "/" + name + ".crt";
  files.key = folder_ + "/" + name + ".key";
  files.ca = ca_;
  WriteCertificate(files.cert, *made);
  Write(files.key, [&](BIO* bio) {
    return ::PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

}  // namespace ag
