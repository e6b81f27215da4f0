import type { ErrorObject } from "ajv";
import { unescaped } from "../cost/effort.ts";

/** So many faults are told, and how many more there are. */
export const MAX_TOLD = 5;

export function messageFromErrors(errors: ErrorObject[], what: string): string {
  const told = errors.slice(0, MAX_TOLD).map((error) => messageFromError(error, what));
  if (errors.length > MAX_TOLD) told.push(`and ${errors.length - MAX_TOLD} more`);
  return told.join("; ");
}

export function messageFromError(error: ErrorObject, root: string): string {
  const { additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = error.params;
  const extra = additionalProperty ?? unevaluatedProperty;
  const path = pathFromPointer(error.instancePath, root);
  if (extra !== undefined) return `${pathFromPointer(`${error.instancePath}/${extra}`, root)}: is not a known field`;
  const values = allowedValues ?? (allowedValue === undefined ? undefined : [allowedValue]);
  return `${path}: ${error.message}${values === undefined ? "" : ` (${values.map((value: unknown) => JSON.stringify(value)).join(", ")})`}`;
}

/** `/tools/use/0` → `tools.use[0]`, below the root's name. */
function pathFromPointer(pointer: string, root: string): string {
  const steps = pointer.split("/").slice(1).map(unescaped);
  const path = steps.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join("");
  return root === "" ? path.replace(/^\./, "") || "the file" : root + path;
}
