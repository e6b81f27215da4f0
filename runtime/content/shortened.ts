/** The text up to so many characters, with how many it had; half of a pair of surrogates, which no wire takes, becomes U+FFFD. */
export function shortened(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text.toWellFormed();
  const rest = `… (${text.length} characters)`;
  return text.slice(0, maxCharacters - rest.length).toWellFormed() + rest;
}
