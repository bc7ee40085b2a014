#include "net/tls.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/file.h"

namespace ag {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Bio Open(const std::string& bytes) {
  return Bio(::BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// OpenSSL would ask a terminal for a passphrase.
int NoPassphrase(char*, int, int, void*) { return 0; }

StatusOr<Certificate> ReadCertificate(const std::string& path) {
  AG_LET(const std::string bytes, ReadFile(path));
  Certificate read(::PEM_read_bio_X509(Open(bytes).get(), nullptr, NoPassphrase, nullptr));
  ::ERR_clear_error();
  if (read == nullptr) {
    return Err(StatusCode::kInvalidArgument, "{}: no certificate in PEM", path);
  }
  return read;
}

StatusOr<Key> ReadKey(const std::string& path) {
  AG_LET(const std::string bytes, ReadFile(path));
  Key read(::PEM_read_bio_PrivateKey(Open(bytes).get(), nullptr, NoPassphrase, nullptr));
  ::ERR_clear_error();
  if (read == nullptr) {
    return Err(StatusCode::kInvalidArgument, "{}: no private key in PEM without a passphrase",
               path);
  }
  return read;
}

std::string TextOf(const ASN1_TIME* time) {
  const Bio bio(::BIO_new(::BIO_s_mem()));
  ::ASN1_TIME_print(bio.get(), time);
  char* text = nullptr;
  const long size = ::BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

Status CheckTime(const std::string& path, const X509& certificate) {
  const ASN1_TIME* begin = ::X509_get0_notBefore(&certificate);
  const ASN1_TIME* end = ::X509_get0_notAfter(&certificate);
  if (::X509_cmp_current_time(end) < 0) {
    return Err(StatusCode::kFailedPrecondition, "{}: the certificate expired on {}", path,
               TextOf(end));
  }
  if (::X509_cmp_current_time(begin) > 0) {
    return Err(StatusCode::kFailedPrecondition, "{}: the certificate is valid from {}", path,
               TextOf(begin));
  }
  return OkStatus();
}

Status CheckPair(const TlsFiles& files) {
  if (files.cert.empty() || files.key.empty()) {
    return Err(StatusCode::kInvalidArgument,
               "a TLS certificate and its key come together (--tls-cert and --tls-key)");
  }
  AG_LET(const Certificate certificate, ReadCertificate(files.cert));
  AG_LET(const Key key, ReadKey(files.key));
  if (::X509_check_private_key(certificate.get(), key.get()) != 1) {
    ::ERR_clear_error();
    return Err(StatusCode::kInvalidArgument, "{} is not the key of {}", files.key, files.cert);
  }
  return CheckTime(files.cert, *certificate);
}

std::shared_ptr<FileWatcherCertificateProvider> Watch(const TlsFiles& files) {
  return std::make_shared<FileWatcherCertificateProvider>(
      files.key, files.cert, files.ca, static_cast<unsigned>(files.reload_seconds));
}

}  // namespace

StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const TlsFiles& files) {
  AG_TRY(CheckPair(files));
  if (!files.ca.empty()) AG_TRY(ReadCertificate(files.ca).status());
  grpc::experimental::TlsServerCredentialsOptions options(Watch(files));
  options.watch_identity_key_cert_pairs();
  if (!files.ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(const TlsFiles& files) {
  if (files.ca.empty()) {
    return Err(StatusCode::kInvalidArgument,
               "TLS needs the certificate that signed the server's (--tls-ca)");
  }
  AG_TRY(ReadCertificate(files.ca).status());
  const bool has_pair = !files.cert.empty() || !files.key.empty();
  if (has_pair) AG_TRY(CheckPair(files));
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(files));
  options.watch_root_certs();
  if (has_pair) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace ag
