import type { JsonObject } from "@bufbuild/protobuf";
import { itsOwn, type JsonSchema, type Spelling } from "./spelling.ts";

/** A custom kind (KIND-3): whose provider, and what the provider calls it. */
const customKind = { pattern: "^[a-zA-Z0-9_-]{1,64}:[a-zA-Z0-9_.-]{1,64}$" };

/** Of a tool of the catalog: letters, digits, _, - and single dots between them. */
export const TOOL_NAME = /^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$/;

export const NAME_WORDS = "must be 1 to 64 letters, digits, _, - or single dots between them";

/** The kinds by their names, and custom ones by their own. */
const kind = {
  field: "executionType",
  schema: ({ enum: kinds, ...own }: JsonSchema): JsonSchema => ({
    ...own,
    type: "string",
    anyOf: [{ enum: (kinds as string[]).filter((name) => name !== "custom") }, customKind],
  }),
  read: (value: unknown): JsonObject => {
    const [provider = "", ...rest] = String(value).split(":");
    return rest.length === 0
      ? { executionType: provider }
      : { executionType: "custom", customType: { provider, toolType: rest.join(":") } };
  },
};

/** Tools in files: schemas are written as JSON and not as text, and the kind has two names. */
export const toolSpelling: Spelling = {
  "toolbus.tool.v1.Tool": {
    fields: {
      $schema: { schema: () => ({ type: "string", description: "Where the schema of this file is." }) },
      name: { field: "name", schema: (own) => ({ ...own, maxLength: 64, pattern: TOOL_NAME.source }) },
      inputSchema: {
        field: "inputSchemaJson",
        schema: () => ({
          type: "object",
          description: 'JSON Schema of the arguments; absent means {"type":"object"}.',
        }),
        read: (value) => ({ inputSchemaJson: JSON.stringify(value) }),
      },
      outputSchema: {
        field: "outputSchemaJson",
        schema: () => ({
          type: ["object", "boolean"],
          description: "JSON Schema of the result; absent means that any result is valid.",
        }),
        read: (value) => ({ outputSchemaJson: JSON.stringify(value) }),
      },
      executionType: kind,
      kind,
      expires: { field: "ttl", schema: itsOwn },
    },
    omitted: ["customType", "annotations"],
    schema: { anyOf: [{ required: ["executionType"] }, { required: ["kind"] }] },
  },
  "toolbus.tool.v1.BuiltinPolicy": {
    fields: { name: { field: "builtin", schema: itsOwn } }, // absent means the built-in of the tool's own name
  },
  "toolbus.tool.v1.HttpExecution": {
    fields: { url: { field: "url", schema: (own) => ({ ...own, pattern: "^https?://" }) } },
  },
};
