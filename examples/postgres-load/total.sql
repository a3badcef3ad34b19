select sum(n) from generate_series(1, 1000) n;
