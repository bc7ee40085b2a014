# Images of AutoGraph. Any builder does: docker build --target coordinator -t autograph .
#   coordinator   autographd, and the command line for health checks and administration
#   worker        autograph-worker on this machine's processors (--build-arg ONNXRUNTIME=1.20.1 adds ONNX Runtime to compare with)
#   worker-cuda   autograph-worker with the CUDA module, on CUDA_BASE
# BASE is Debian 12; scripts/test.sh --long container builds with one made by debootstrap, and runs the images.
ARG BASE=debian:12-slim
ARG CUDA_BASE=nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04

FROM ${BASE} AS build
COPY scripts/install.sh /src/scripts/install.sh
RUN /src/scripts/install.sh --bundle && rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src
RUN scripts/build.sh autograph autographd autograph-worker autograph_runtime \
 && scripts/relocate.sh build /opt/autograph \
 && scripts/sbom.sh build /opt/autograph/share/autograph.spdx.json

# The programs with every library that they load but glibc. A user without rights; what is written lies in /data.
FROM ${BASE} AS programs
COPY --from=build /opt/autograph /opt/autograph
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin autograph \
 && install -d -o autograph -g autograph -m 0700 /data \
 && install -d -o autograph -g autograph -m 0755 /var/lock/autograph
ENV PATH=/opt/autograph/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/data AUTOGRAPH_DATA=/data AUTOGRAPH_BLOB_CACHE=/data/worker-blobs \
    AUTOGRAPH_MEASURING_LOCK=/var/lock/autograph/measuring.lock
USER 10001
WORKDIR /data
VOLUME /data

FROM programs AS coordinator
# Beyond loopback it wants TLS (AUTOGRAPH_TLS_CERT, AUTOGRAPH_TLS_KEY) or AUTOGRAPH_INSECURE=true: docs/security.md.
ENV AUTOGRAPH_LISTEN=0.0.0.0:7450
EXPOSE 7450 9464
# AUTOGRAPH_SERVER is for the health check and for `exec` in the container: its own address.
ENV AUTOGRAPH_SERVER=127.0.0.1:7450
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["autograph", "health", "ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["autographd"]

FROM programs AS worker
ARG ONNXRUNTIME=""
USER 0
RUN if [ -n "${ONNXRUNTIME}" ]; then \
      apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv \
      && python3 -m venv /opt/python && /opt/python/bin/pip install -q --no-cache-dir numpy onnxruntime==${ONNXRUNTIME} \
      && rm -rf /var/lib/apt/lists/*; fi
ENV AUTOGRAPH_PYTHON=/opt/python/bin/python
USER 10001
# A worker has no port: `workers list` and the coordinator's metrics say whether it serves. It ends when its device is lost for good.
STOPSIGNAL SIGTERM
ENTRYPOINT ["autograph-worker"]

FROM ${CUDA_BASE} AS build-cuda
COPY scripts/install.sh /src/scripts/install.sh
RUN /src/scripts/install.sh --bundle && rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src
RUN scripts/build.sh autograph autographd autograph-worker autograph-nvrtc autograph_runtime autograph_cuda \
 && scripts/relocate.sh build /opt/autograph \
 && scripts/sbom.sh build /opt/autograph/share/autograph.spdx.json

FROM ${CUDA_BASE} AS worker-cuda
COPY --from=build-cuda /opt/autograph /opt/autograph
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin autograph \
 && install -d -o autograph -g autograph -m 0700 /data \
 && install -d -o autograph -g autograph -m 0755 /var/lock/autograph
ENV PATH=/opt/autograph/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/data AUTOGRAPH_BLOB_CACHE=/data/worker-blobs AUTOGRAPH_DEVICE=cuda:0 \
    AUTOGRAPH_MEASURING_LOCK=/var/lock/autograph/measuring.lock
USER 10001
WORKDIR /data
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["autograph-worker"]

# Makes what deploy/compose.yaml needs once: a certificate authority, a certificate of the coordinator, and tokens.
FROM programs AS setup
USER 0
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends openssl && rm -rf /var/lib/apt/lists/* \
 && install -d -o autograph -g autograph -m 0700 /certs
COPY deploy/compose/setup.sh /usr/local/bin/setup.sh
USER 10001
VOLUME /certs
ENTRYPOINT ["/usr/local/bin/setup.sh", "/certs"]
