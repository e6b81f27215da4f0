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
});

process.on("message", async ({ acquire }: { acquire: string }) => {
  tell((await ownership.acquire(acquire, undefined)).kind, acquire);
});
process.on("disconnect", () => process.exit());
tell("ready", "");
