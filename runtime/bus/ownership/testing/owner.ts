import { openBus } from "../../bus.ts";
import type { BusLogin } from "../../credentials/login.ts";
import { openOwnership } from "../ownership.ts";

/** A process that owns what it is told to, for tests that kill or freeze it. It is spoken to over the channel of `fork`. */
const settings = JSON.parse(process.argv[2] ?? "{}") as {
  url: string;
  login: BusLogin;
  instance: string;
};
const tell = (event: string, key: string) => process.send?.({ event, key });

const bus = await openBus({ ...settings, name: settings.instance });
const ownership = await openOwnership<AsyncDisposable, void>(bus, {
  kind: "thing",
  instance: settings.instance,
  open: async (key) => {
    tell("opened", key);
    return { [Symbol.asyncDispose]: async () => void tell("closed", key) };
  },
  onLost: (key) => tell("lost", key),
});

process.on("message", async ({ acquire, owned }: { acquire?: string; owned?: string }) => {
  if (acquire !== undefined) tell((await ownership.acquire(acquire, undefined)).kind, acquire);
  if (owned !== undefined) tell(ownership.owned(owned) ? "owned" : "not owned", owned);
});
process.on("disconnect", () => process.exit());
tell("ready", "");
