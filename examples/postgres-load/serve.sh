#!/bin/sh
# Serve a new, empty cluster of PostgreSQL on $PERFFLOW_PORT until a signal ends it, and remove it then.
# PostgreSQL refuses root, so root becomes the user postgres.
set -eu
for folder in /usr/lib/postgresql/*/bin; do
    [ ! -d "$folder" ] || PATH=$folder:$PATH
done
cluster=$(mktemp -d)
become=""
if [ "$(id -u)" = 0 ]; then
    chown postgres "$cluster"
    become="runuser -u postgres --"
fi
cd "$cluster"
# The signal also reaches the server, which this script waits for.
trap : INT TERM
$become initdb -D "$cluster/data" -A trust -U tester --no-sync >&2
$become postgres -D "$cluster/data" -p "$PERFFLOW_PORT" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories="$cluster" -c fsync=off || true
cd /
rm -rf "$cluster"
