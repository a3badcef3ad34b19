#!/bin/sh
awk 'BEGIN { for (i = 0; i < 1200000; i++) s += i % 7; print s }'
