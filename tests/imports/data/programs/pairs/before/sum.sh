#!/bin/sh
awk 'BEGIN { for (i = 0; i < 1500000; i++) s += i % 7; print s }'
