import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** What is read of a JSON Schema; all else says nothing that a page could say shorter. */
interface Schema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** A table of fields. */
interface Section {
  readonly title: string;
  readonly schema: Schema;
}

const FILES = { agent: "Agent", tool: "Tool" };
/** A longer pattern is no help to a reader; an editor checks it. */
const LONGEST_PATTERN = 40;

const head = `# Files of agents and tools

Every field of the files in \`agents/\` and \`tools/\` of a [project](projects.md). \`npm run reference\` writes this page from the schemas by which the
router reads these files and editors complete them, \`gen/jsonschema/agent.schema.json\` and \`tool.schema.json\`; a project has them in \`schemas/\`.

- A field in **bold** is required. What it means that a field is absent is said where it means something.
- A **time** is a number of milliseconds, or a text in seconds: \`1500\`, \`"1.5s"\`.
- A field that is not here is refused, with its place in the file.
`;

/** The whole page. */
export async function filesReference(root: string): Promise<string> {
  const parts = Object.entries(FILES).map(async ([name, title]) => {
    const text = await readFile(join(root, "gen", "jsonschema", `${name}.schema.json`), "utf8");
    return partOf(title, JSON.parse(text) as Schema);
  });
  return [head, ...(await Promise.all(parts))].join("\n");
}

/** A file's own fields first, then those of what it holds, in the order of their mention. */
function partOf(file: string, whole: Schema): string {
  const sections: Section[] = [];
  const mention = (title: string, schema: Schema): string => {
    if (!sections.some((one) => one.title === title)) sections.push({ title, schema });
    return `[${title}](#${title
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-")})`;
  };
  const named = (reference: string): Schema => whole.$defs?.[reference.replace("#/$defs/", "")] ?? {};

  const formOf = (schema: Schema, path: string): string => {
    if (schema.$ref !== undefined) {
      const of = named(schema.$ref);
      return of.properties === undefined ? "any object" : mention(`${file}: ${of.title}`, of);
    }
    if (schema.properties !== undefined) return mention(`${file}: ${path}`, schema);
    if (schema.items !== undefined) return `list of${upTo(schema.maxItems)}: ${formOf(schema.items, path)}`;
    if (typeof schema.additionalProperties === "object")
      return `names with ${formOf(schema.additionalProperties, path)}`;
    const choices = schema.oneOf ?? schema.anyOf;
    if (choices !== undefined) return choices.map((one) => formOf(one, path)).join(", or ");
    return plainForm(schema);
  };

  sections.push({ title: `${file} file`, schema: whole });
  const texts: string[] = [];
  for (const { title, schema } of sections) {
    const isWhole = schema === whole;
    const inner = isWhole ? "" : `${title.slice(file.length + 2)}.`;
    const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
      const shown = schema.required?.includes(name) ? `**\`${name}\`**` : `\`${name}\``;
      return `| ${shown} | ${cell(field.description ?? "")} | ${cell(formOf(field, inner + name))} |`;
    });
    texts.push(
      `${isWhole ? "##" : "###"} ${title}`,
      "",
      ...(schema.description === undefined ? [] : [schema.description, ""]),
      "| field | meaning | value |",
      "|---|---|---|",
      ...rows,
      "",
    );
  }
  return texts.join("\n");
}

function plainForm(schema: Schema): string {
  const { const: only, enum: values, pattern, minimum, maximum, maxLength } = schema;
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (values !== undefined) return values.map((value) => `\`"${value}"\``).join(", ");
  const types =
    typeof schema.type === "string" ? [schema.type] : (schema.type ?? (pattern === undefined ? [] : ["string"]));
  if (types.includes("integer")) {
    if (pattern?.endsWith("s$")) return "time";
    return `whole number${minimum === undefined ? "" : ` from ${count(minimum)}`}${upTo(maximum)}`;
  }
  if (types.includes("string")) {
    if (pattern !== undefined && pattern.length <= LONGEST_PATTERN) return `text like \`${pattern}\``;
    return `text${maxLength === undefined ? "" : `, ${count(maxLength)} characters at most`}`;
  }
  if (types.includes("boolean")) return types.length === 1 ? "`true` or `false`" : "JSON Schema";
  return types.includes("object") ? "object" : "any";
}

function upTo(most: number | undefined): string {
  return most === undefined ? "" : ` up to ${count(most)}`;
}

function count(value: number): string {
  return value.toLocaleString("en");
}

/** A bar would end the cell, also in code. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
