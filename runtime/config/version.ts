/** Of the suite, its command, its libraries and its packages; `npm run check` compares it with each of them. */
export const VERSION = "0.2.0";
