# Three stages: the last has the environment and nothing that built it. Runs as nobody in
# particular, on a read-only file system; all state is in the database.
# Other bases: --build-arg PYTHON=… --build-arg RUST=…; the program `python` must be in the first.
ARG PYTHON=python:3.13-slim
ARG RUST=rust:1.83-slim

# The decoder in Rust (docs/capacity.md): one library for every Python from 3.11 on.
FROM ${RUST} AS native
WORKDIR /src
COPY lineage/native .
RUN PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1 \
    cargo rustc --locked --release --features python --crate-type cdylib -- -C strip=symbols

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /opt/build && python -m venv --without-pip /opt/ldfi
COPY requirements requirements
RUN /opt/build/bin/pip install --require-hashes -r requirements/build.lock
RUN /opt/build/bin/pip --python /opt/ldfi install --require-hashes -r requirements/image.lock
COPY . .
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist .
RUN /opt/build/bin/pip --python /opt/ldfi install --no-deps dist/*.whl
COPY --from=native /src/target/release/libldfi_native.so .
RUN cp libldfi_native.so "$(/opt/ldfi/bin/python -c \
    'import sysconfig; print(sysconfig.get_path("purelib"))')/ldfi_native.abi3.so"

FROM ${PYTHON}
COPY --from=build /opt/ldfi /opt/ldfi
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin ldfi \
    && install --directory --owner ldfi /state
USER 10001
ENV PATH=/opt/ldfi/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LDFI_HOST=0.0.0.0
WORKDIR /state
EXPOSE 8600 4317
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8600/readyz', timeout=2)"]
CMD ["ldfi", "serve"]
