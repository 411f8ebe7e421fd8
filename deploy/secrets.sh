#!/bin/sh
# Write an .env for `docker compose`, with secrets that nobody else has:
#
#     (umask 077; sh deploy/secrets.sh > .env)
set -eu
secret() { openssl rand -hex 24; }
postgres=$(secret) admin=$(secret) edge=$(secret) ingest=$(secret) metrics=$(secret)
member=$(secret) signing=$(secret) grafana=$(secret)
for each in "$postgres" "$admin" "$edge" "$ingest" "$metrics" "$member" "$signing" "$grafana"; do
  [ "${#each}" = 48 ] || { echo "openssl made no secret" >&2; exit 1; }
done
cat <<END
POSTGRES_PASSWORD=$postgres
LDFI_DATABASE_URL=postgresql+psycopg://ldfi:$postgres@postgres/ldfi
LDFI_TOKENS=admin:$admin,edge:$edge,ingest:$ingest,metrics:$metrics
LDFI_ADMIN_TOKEN=$admin
LDFI_EDGE_TOKEN=$edge
LDFI_INGEST_TOKEN=$ingest
LDFI_METRICS_TOKEN=$metrics
LDFI_MEMBER_KEY=$member
FIT_KEYS=k1:$signing
GRAFANA_PASSWORD=$grafana
END
