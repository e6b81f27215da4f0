import { Ajv2020 } from "ajv/dist/2020.js";
import standalone from "ajv/dist/standalone/index.js";
import type { JsonSchema } from "#runtime/agent-file/spelling.ts";

const REQUIRE = /const (\w+) = require\("([^"]+)"\)\.default;/g;

/**
 * A module that judges by a schema, and tells all faults at once: what Ajv would compile in a tenth of a second at each start. The
 * schema of schemas is left out, as the form is generated, and tests hold it to be one.
 */
export function formModule(schema: JsonSchema): string {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    allowUnionTypes: true,
    strictRequired: false,
    meta: false,
    validateSchema: false,
    code: { source: true },
  });
  const code = standalone.default(ajv, ajv.compile(schema)).replace('"use strict";', "");
  const [, name] = /^module\.exports = (\w+);/.exec(code) ?? [];
  if (name === undefined) throw new Error("Ajv writes another module than expected");
  // What a module of CommonJS exports by default is the module itself for Node, and its `default` for others.
  const imports = [...code.matchAll(REQUIRE)].map(
    ([, as, path]) => `import { default as ${as}Module } from "${path}.js";`,
  );
  const body = code
    .replace(/^module\.exports = .*?;module\.exports\.default = \w+;/, "")
    .replace(REQUIRE, "const $1 = $1Module.default ?? $1Module;");
  return [
    "// Compiled by Ajv from the JSON Schema of the same name.",
    "// @ts-nocheck",
    'import type { JsonObject } from "@bufbuild/protobuf";',
    'import type { ValidateFunction } from "ajv";',
    ...imports,
    body,
    `export const form = ${name} as unknown as ValidateFunction<JsonObject>;`,
    "",
  ].join("\n");
}
