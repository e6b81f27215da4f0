import type { ServiceConfig } from "../config/service-config.ts";
import type { ServiceContext } from "../lifecycle/run-service.ts";
import { type Bus, openBus } from "./bus.ts";

/** The bus of a service's process, as its configuration says, with what becomes of the connection in its log. */
export function openServiceBus(config: ServiceConfig, context: ServiceContext): Promise<Bus> {
  const { name, instance, logger, signal } = context;
  return openBus({
    url: config.natsUrl,
    user: config.natsUser,
    password: config.natsPassword,
    replicas: config.replicas,
    name: `${name}-${instance}`,
    signal,
    onStatus: (status) =>
      status.kind === "unreadable"
        ? logger.warn(status, "a stored record cannot be read and is passed over")
        : logger.info(status, `bus: ${status.kind}`),
  });
}
