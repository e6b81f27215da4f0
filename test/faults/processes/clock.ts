// Loaded into each service of a fault run, which tells it by a message how far its clock is from the true one.

const TrueDate = Date;
let shiftMs = 0;

class ShiftedDate extends TrueDate {
  constructor(...args: unknown[]) {
    super(...((args.length === 0 ? [ShiftedDate.now()] : args) as [number]));
  }

  static override now(): number {
    return TrueDate.now() + shiftMs;
  }
}

process.on("message", (message: { kind?: string; byMs?: number }) => {
  if (message.kind !== "clock") return;
  shiftMs = message.byMs ?? 0;
  globalThis.Date = ShiftedDate as DateConstructor;
});
process.channel?.unref(); // a listener alone would keep the process alive
