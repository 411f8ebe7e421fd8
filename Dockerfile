FROM python:3.13-slim
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY fit fit
COPY lineage lineage
COPY solver solver
COPY experiments experiments
COPY dashboards dashboards
COPY demo demo
RUN pip install --no-cache-dir '.[demo]' \
    && useradd --system --no-create-home ldfi \
    && mkdir /state && chown ldfi /state
USER ldfi
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 8600
CMD ["ldfi", "serve", "--host", "0.0.0.0", "--database", "/state/ldfi.sqlite3"]
