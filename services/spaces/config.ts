export { readServiceConfig as readConfig, type ServiceConfig as Config } from "#runtime/config/service-config.ts";
