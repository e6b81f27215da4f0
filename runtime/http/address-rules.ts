import type { EnvironmentReader } from "../config/environment.ts";

/** `host:port` and ranges that an address guard lets through although they are not public. */
export function addressRulesFromReader(reader: EnvironmentReader, name: string, meaning: string): string[] {
  const rules = reader.list(name, { meaning, form: "list of `host:port` and ranges like `10.0.0.0/8`", default: [] });
  for (const entry of rules.filter((one) => !isAddressRule(one)))
    reader.fault(name, entry, "host:port or a range like 10.0.0.0/8");
  return rules;
}

function isAddressRule(entry: string): boolean {
  return /^[^/\s]+:\d{1,5}$/.test(entry) || /^[0-9a-fA-F.:]+\/\d{1,3}$/.test(entry);
}
