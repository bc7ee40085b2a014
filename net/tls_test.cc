#include "net/tls.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "net/testing/certificates.h"

namespace ag {
namespace {

class TlsTest : public ::testing::Test {
 protected:
  const TempDir folder_ = *TempDir::Make("tls");
  TestAuthority authority_{folder_.path(), "ours"};
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
};

TEST_F(TlsTest, GoodFiles) {
  TlsFiles files = authority_.Make("one");
  EXPECT_TRUE(TlsServerCredentials(files).ok());
  EXPECT_TRUE(TlsChannelCredentials(files).ok());
  files.ca.clear();
  EXPECT_TRUE(TlsServerCredentials(files).ok());
  EXPECT_TRUE(TlsChannelCredentials({.ca = authority_.ca()}).ok());
}

TEST_F(TlsTest, WrongFiles) {
  const TlsFiles good = authority_.Make("one");
  const TlsFiles other = authority_.Make("other");
  ASSERT_TRUE(WriteFileAtomically(Path("text"), "this is none").ok());
  const std::string pair =
      "INVALID_ARGUMENT: a TLS certificate and its key come together (--tls-cert and --tls-key)";
  struct Case {
    TlsFiles files;
    std::string message;
  };
  const Case cases[] = {
      {{.cert = good.cert, .ca = good.ca}, pair},
      {{.key = good.key, .ca = good.ca}, pair},
      {{.cert = good.cert, .key = other.key, .ca = good.ca},
       "INVALID_ARGUMENT: " + other.key + " is not the key of " + good.cert},
      {{.cert = Path("text"), .key = good.key, .ca = good.ca},
       "INVALID_ARGUMENT: " + Path("text") + ": no certificate in PEM"},
      {{.cert = good.cert, .key = Path("text"), .ca = good.ca},
       "INVALID_ARGUMENT: " + Path("text") + ": no private key in PEM without a passphrase"},
      {{.cert = good.cert, .key = good.key, .ca = Path("text")},
       "INVALID_ARGUMENT: " + Path("text") + ": no certificate in PEM"},
      {{.cert = good.cert, .key = good.key, .ca = Path("none")},
       "NOT_FOUND: read " + Path("none") + ": No such file or directory"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToString(TlsServerCredentials(c.files).status()), c.message);
    EXPECT_EQ(ToString(TlsChannelCredentials(c.files).status()), c.message);
  }
  EXPECT_EQ(ToString(TlsServerCredentials({.ca = good.ca}).status()), pair);
  EXPECT_EQ(ToString(TlsChannelCredentials({.cert = good.cert, .key = good.key}).status()),
            "INVALID_ARGUMENT: TLS needs the certificate that signed the server's (--tls-ca)");
}

TEST_F(TlsTest, CertificatesOutOfTheirTime) {
  const TlsFiles expired = authority_.Make("old", TestAuthority::kExpired);
  const TlsFiles early = authority_.Make("new", TestAuthority::kNotYet);
  for (const auto& status :
       {TlsServerCredentials(expired).status(), TlsChannelCredentials(expired).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_TRUE(Message(status).starts_with(expired.cert + ": the certificate expired on "));
  }
  for (const auto& status :
       {TlsServerCredentials(early).status(), TlsChannelCredentials(early).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_TRUE(Message(status).starts_with(early.cert + ": the certificate is valid from "));
  }
}

}  // namespace
}  // namespace ag
