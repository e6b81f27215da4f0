import { isObject } from "#runtime/schema/json-object.ts";

/** Schemas declare by it that an argument is sent as a header too (2026-07-28, Streamable HTTP). */
const KEYWORD = "x-mcp-header";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);
/** Their values are data, whatever they hold. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);

/** Why the headers that a tool's schema declares cannot be sent: such a tool is not to be offered. Undefined when they can. */
export function faultOfHeaders(inputSchema: unknown): string | undefined {
  const names = new Set<string>();
  const visit = (schema: unknown, isArgument: boolean): string | undefined => {
    if (Array.isArray(schema)) return firstFault(schema, (one) => visit(one, false));
    if (!isObject(schema)) return undefined;
    const fault = KEYWORD in schema ? faultOf(schema, isArgument, names) : undefined;
    const { properties, ...rest } = schema;
    const others = Object.keys(rest).filter((key) => key !== KEYWORD && !DATA.has(key));
    return (
      fault ??
      firstFault(isObject(properties) ? Object.values(properties) : [], (one) => visit(one, isArgument)) ??
      firstFault(others, (key) => visit(rest[key], false))
    );
  };
  if (isObject(inputSchema) && KEYWORD in inputSchema) return faultOf(inputSchema, false, names);
  return visit(inputSchema, true);
}

function faultOf(schema: Record<string, unknown>, isArgument: boolean, names: Set<string>): string | undefined {
  const { [KEYWORD]: name, type } = schema;
  const shown = `its ${KEYWORD} ${JSON.stringify(name)}`;
  if (typeof name !== "string" || !TOKEN.test(name)) return `${shown} is no name of a header`;
  if (!isArgument) return `${shown} is at no argument`;
  if (!TYPES.has(type)) return `${shown} is at an argument that is no string, integer or boolean`;
  if (names.has(name.toLowerCase())) return `${shown} stands at two arguments`;
  names.add(name.toLowerCase());
  return undefined;
}

function firstFault<T>(values: readonly T[], faultOfOne: (value: T) => string | undefined): string | undefined {
  for (const value of values) {
    const fault = faultOfOne(value);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
