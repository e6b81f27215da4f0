/** What the reply subject of a JetStream message says of it. */
export interface DeliveryInfo {
  /** How often it was delivered, this time included. */
  readonly deliveries: number;
  readonly storedAtMs: number;
  /** How many others wait behind it. */
  readonly pending: number;
}

/** `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<sequence>.<its place>.<time>.<pending>[.<random>]` */
export function deliveryInfoFrom(reply: string, stream: string): DeliveryInfo {
  const tokens = reply.split(".");
  const at = tokens.indexOf(stream);
  return {
    deliveries: Number(tokens[at + 2]),
    storedAtMs: Number(tokens[at + 5]) / 1e6,
    pending: Number(tokens[at + 6]),
  };
}
