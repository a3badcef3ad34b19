import { Bench } from 'tinybench';

missing(Bench);
