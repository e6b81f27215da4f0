/** What the process of a peer does: it is started with an argument, says that it is ready, and answers the orders of its parent. */

export function argumentOf<T>(): T {
  return JSON.parse(process.argv[2] ?? "");
}

/** From then on the process ends with its parent. */
export function sayReady(hello: object = {}): void {
  process.on("disconnect", () => process.exit());
  process.send?.({ ...hello, kind: "ready" });
}

export function sayFault(error: unknown): void {
  process.send?.({ kind: "fault", text: String(error) });
}

export function answerOrders<Order>(work: (order: Order) => Promise<object>): void {
  process.on("message", (order: Order) => {
    work(order).then((report) => process.send?.(report), sayFault);
  });
}
