/** An amount in dollars. */
export function usd(dollars: number) {
  return { currencyCode: "USD", micros: BigInt(Math.round(dollars * 1_000_000)) };
}

/** A price of a million tokens read and a million tokens written, in dollars. */
export function usdPrice(input: number, output: number) {
  return {
    currencyCode: "USD",
    inputMicrosPerMillionTokens: usd(input).micros,
    outputMicrosPerMillionTokens: usd(output).micros,
  };
}
