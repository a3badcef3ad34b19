const WORK = 100;

/** Returns how many words a text has, times the passes over it. */
export function count(text) {
  let words = 0;
  for (let pass = 0; pass < WORK; pass++) {
    let inside = false;
    for (let i = 0; i < text.length; i++) {
      const letter = text.charCodeAt(i) !== 32;
      if (letter && !inside) words++;
      inside = letter;
    }
  }
  return words;
}
