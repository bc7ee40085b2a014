#!/bin/bash
# Makes a certificate authority, a certificate of the coordinator and tokens in a folder, once; a second run changes nothing.
# usage: setup.sh FOLDER [NAME...]   (further names and addresses of the coordinator: DNS:host.example, IP:10.0.0.5)
set -euo pipefail
cd "$1"
shift
umask 077
if [[ ! -e ca.crt ]]; then
  openssl req -x509 -newkey rsa:3072 -nodes -days 3650 -subj "/CN=AutoGraph CA" -keyout ca.key -out ca.crt.new 2>/dev/null
  mv ca.crt.new ca.crt
fi
if [[ ! -e server.crt ]]; then
  names=DNS:coordinator,DNS:localhost,IP:127.0.0.1
  for name in "$@"; do names+=,$name; done
  openssl req -newkey rsa:3072 -nodes -subj /CN=coordinator -keyout server.key -out server.csr 2>/dev/null
  openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 \
    -extfile <(echo "subjectAltName=$names") -out server.crt.new 2>/dev/null
  mv server.crt.new server.crt
  rm server.csr
fi
token() {  # NAME ROLES
  if [[ ! -e $1.token ]]; then autograph token "$1" --roles "$2" --tokens tokens -o "$1.token" >/dev/null; fi
}
token worker worker
token user submit,read
token admin admin
echo "setup.sh: certificates and tokens are in $PWD"
