# dtkc-serve with its models and ONNX Runtime.
#
#   docker build -t dtkc-serve .
#   docker run --rm -p 8080:8080 dtkc-serve
#   docker run --rm -p 8080:8080 -e DTKC_API_KEY=a-long-secret -v ./models:/models:ro -v names:/var/lib/dtkc \
#     dtkc-serve --model shoes=/models/shoes.onnx
#
# Every flag is also a DTKC_* variable: docker run --rm dtkc-serve --help

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p dtkc-serve

# The library of the version that scripts/setup.sh uses, out of its Python package.
FROM python:3.11-slim-bookworm AS onnxruntime
COPY scripts/setup.sh /setup.sh
RUN version=$(sed -n 's/^ONNXRUNTIME_VERSION=//p' /setup.sh) \
 && pip install --no-cache-dir --no-deps --target /ort "onnxruntime==$version" \
 && cp /ort/onnxruntime/capi/libonnxruntime.so.* /libonnxruntime.so

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/dtkc --create-home dtkc
COPY --from=onnxruntime /libonnxruntime.so /usr/local/lib/libonnxruntime.so
COPY --from=build /src/target/release/dtkc-serve /usr/local/bin/dtkc-serve
COPY models/*.onnx /usr/local/share/dtkc/models/
ENV ORT_DYLIB_PATH=/usr/local/lib/libonnxruntime.so \
    ORT_DISABLE_TELEMETRY=1 \
    DTKC_MODELS=/usr/local/share/dtkc/models \
    DTKC_STATE_DIR=/var/lib/dtkc \
    DTKC_HOST=0.0.0.0 \
    DTKC_LOG_FORMAT=json
# By number, so that a cluster can check that it is not root.
USER 10001
VOLUME /var/lib/dtkc
EXPOSE 8080
STOPSIGNAL SIGTERM
# There is no curl in the image; bash can open a connection itself. It speaks no TLS: there an open port must do.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["bash", "-c", \
  "exec 3<>/dev/tcp/127.0.0.1/${DTKC_PORT:-8080} && { [ -n \"$DTKC_TLS_CERT\" ] || { printf 'GET /readyz HTTP/1.0\\r\\nhost: x\\r\\n\\r\\n' >&3 && grep -q '200 OK' <&3; }; }"]
ENTRYPOINT ["dtkc-serve"]
