import type { ServiceConfig } from "../../config/service-config.ts";
import type { ServiceContext } from "../../lifecycle/run-service.ts";
import { type Bus, type BusStatus, openBus } from "../bus.ts";
import { readLogin } from "./directory.ts";
import { PROBING, type StoresAccess } from "./permissions.ts";
import { followTrustList } from "./trust/trust-list.ts";

/** The bus of a service's process, signed in with the service's own key, with what becomes of the connection in its log. */
export async function openServiceBus(
  config: ServiceConfig,
  context: ServiceContext,
  stores: StoresAccess,
): Promise<Bus> {
  const { name, instance, signal } = context;
  const [service = name] = name.split(".", 1); // one that is served under a name of its own below its service's
  return openBus({
    url: config.natsUrl,
    login: await readLogin(config.busCredentials, service),
    trust: await followTrustList(config.busCredentials),
    stores: { ...PROBING, ...stores },
    replicas: config.replicas,
    name: `${name}-${instance}`,
    signal,
    onStatus: (status) => logStatus(status, context),
  });
}

function logStatus(status: BusStatus, { name, logger }: ServiceContext): void {
  if (status.kind === "unreadable") logger.warn(status, "a record or message cannot be read and is passed over");
  else if (status.kind === "stalled") logger.error(status, "nothing can be stored, and calls are refused");
  else if (status.kind === "stores again") logger.warn("the bus stores again");
  else if (status.kind === "denied") {
    const what = status.operation === "publish" ? "publish to" : "subscribe to";
    logger.error(status, `the bus does not let ${name} ${what} ${status.subject}`);
  } else logger.info(status, `bus: ${status.kind}`);
}
