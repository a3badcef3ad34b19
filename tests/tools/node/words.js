export const WORK = 100;

export function count(words) {
  let sum = 0;
  for (let i = 0; i < WORK; i++) for (const word of words) sum += word.length % 7;
  return sum;
}

export function build(n) {
  const found = new Map();
  for (let i = 0; i < n; i++) found.set(`word${i}`, i);
  return found;
}
