# Two stages: the second has the environment and nothing that built it. Runs as nobody in
# particular, on a read-only file system; all state is in the database.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/ldfi
COPY pyproject.toml README.md LICENSE ./
COPY ldfi ldfi
COPY fit fit
COPY lineage lineage
COPY solver solver
COPY experiments experiments
COPY dashboards dashboards
COPY demo demo
COPY testing testing
RUN /opt/ldfi/bin/pip install --no-cache-dir --disable-pip-version-check '.[demo,postgresql,kafka]' \
    && /opt/ldfi/bin/pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /opt/ldfi /opt/ldfi
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin ldfi \
    && install --directory --owner ldfi /state
USER 10001
ENV PATH=/opt/ldfi/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LDFI_HOST=0.0.0.0
WORKDIR /state
EXPOSE 8600
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8600/readyz', timeout=2)"]
CMD ["ldfi", "serve"]
