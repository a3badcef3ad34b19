#!/bin/sh
# A program with two benchmarks; `slow` fails on request.
case "$1" in
list) printf 'quick\nslow\n'; exit 0 ;;
esac
for name in ${2:-quick slow}; do
  [ "$name" = "$FAILS" ] && { echo "ERROR: $name broke"; exit 0; }
  echo "$name took ${SECONDS_TAKEN:-1.5}000 ms"
done
echo done
