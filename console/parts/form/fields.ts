// What a form asks for, from a JSON Schema. What a form has no words for is asked for as JSON text, so that every schema can be
// answered; whether an answer fits is judged by the suite alone.

type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  /** Empty for the answer as a whole. */
  readonly name: string;
  readonly title: string;
  readonly help: string;
  readonly kind: "text" | "long-text" | "number" | "integer" | "yes-no" | "choice" | "choices" | "json";
  readonly isRequired: boolean;
  /** Of one choice, or several: the values, in the schema's order. */
  readonly choices: readonly unknown[];
  /** What each of them is called. */
  readonly labels: readonly string[];
  readonly initial: unknown;
  readonly schema: Schema;
}

/** The fields of an object with properties; else one field for all of it. */
export function fieldsFrom(schemaJson: string): Field[] {
  const schema = parseSchema(schemaJson);
  const { properties } = schema;
  if (!isSchema(properties)) return [fieldFrom("", schema, true)];
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(properties).map(([name, value]) =>
    fieldFrom(name, isSchema(value) ? value : {}, required.has(name)),
  );
}

function parseSchema(json: string): Schema {
  if (json === "") return {};
  try {
    const value: unknown = JSON.parse(json);
    return isSchema(value) ? value : {};
  } catch {
    return {};
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldFrom(name: string, schema: Schema, isRequired: boolean): Field {
  const { title, description, default: initial } = schema;
  const isList = schema.type === "array" && isSchema(schema.items);
  const { choices, labels } = choicesFrom(isList ? (schema.items as Schema) : schema);
  const isRepeating = isList && (schema.uniqueItems === false || Number(schema.minItems) > choices.length);
  return {
    name,
    title: typeof title === "string" ? title : name,
    help: typeof description === "string" ? description : "",
    kind: isRepeating || choices.length === 0 ? kindFrom(schema) : isList ? "choices" : "choice",
    isRequired,
    choices,
    labels,
    initial,
    schema,
  };
}

/** Values to choose from: listed, or each a schema of its own with a title. */
function choicesFrom(schema: Schema): Pick<Field, "choices" | "labels"> {
  const { oneOf, anyOf, enumNames } = schema;
  const titled = [oneOf, anyOf].find(
    (list) => Array.isArray(list) && list.length > 0 && list.every((one) => isSchema(one) && "const" in one),
  );
  const members = titled as readonly Schema[] | undefined;
  const listed = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : [];
  const choices = members?.map((member) => member.const) ?? listed;
  const titles: readonly unknown[] = members?.map(({ title }) => title) ?? (Array.isArray(enumNames) ? enumNames : []);
  const labels = choices.map(
    (choice, index) => [titles[index], choice].find((text) => typeof text === "string") ?? JSON.stringify(choice),
  );
  return { choices, labels };
}

function kindFrom({ type, maxLength, format }: Schema): Field["kind"] {
  if (type === "boolean") return "yes-no";
  if (type === "number" || type === "integer") return type;
  if (type !== "string") return "json";
  return typeof format === "string" || (typeof maxLength === "number" && maxLength <= 100) ? "text" : "long-text";
}

/** What a field holds, as the form has it: text, or the number of a choice, or of several as `2,0`, in the order in which they were chosen. */
export type Entries = Readonly<Record<string, string>>;

export function initialEntries(fields: readonly Field[]): Entries {
  return Object.fromEntries(fields.map((field) => [field.name, entryFrom(field)]));
}

function entryFrom({ kind, choices, initial, isRequired }: Field): string {
  const indexOf = (value: unknown) => choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value));
  if (kind === "choice") {
    const index = indexOf(initial);
    return index >= 0 ? `${index}` : isRequired && choices.length === 1 ? "0" : "";
  }
  if (kind === "choices") {
    const chosen = Array.isArray(initial) ? initial.map(indexOf) : [];
    return chosen.includes(-1) ? "" : chosen.join();
  }
  if (initial === undefined || (kind === "yes-no" && typeof initial !== "boolean")) return "";
  return typeof initial === "string" && kind !== "json" ? initial : JSON.stringify(initial);
}

/** The answer as JSON text. Throws an error that names the field whose text cannot be one. */
export function answerFrom(fields: readonly Field[], entries: Entries): string {
  const [first] = fields;
  if (fields.length === 1 && first?.name === "") return jsonFrom(first, entries[""] ?? "") ?? "null";
  const members = fields.flatMap((field) => {
    const json = jsonFrom(field, entries[field.name] ?? "");
    return json === undefined ? [] : [`${JSON.stringify(field.name)}:${json}`];
  });
  return `{${members.join()}}`;
}

/** Undefined for what was left empty and may be. Numbers and JSON stay as they were written. */
function jsonFrom({ name, title, kind, choices, isRequired }: Field, entry: string): string | undefined {
  const called = title || "the answer";
  if (kind === "text" || kind === "long-text") return entry === "" && !isRequired ? undefined : JSON.stringify(entry);
  if (kind === "choices" && (entry !== "" || isRequired))
    return JSON.stringify(chosenIn(entry).map((at) => choices[at]));
  if (entry.trim() === "") {
    if (isRequired && name !== "") throw new Error(`${called} is missing`);
    return undefined;
  }
  if (kind === "choice") return JSON.stringify(choices[Number(entry)]);
  if (kind === "yes-no") return `${entry === "true"}`;
  if (kind === "json" && !isJson(entry)) throw new Error(`${called} is no JSON: a text stands in quotes, as "yes"`);
  if (kind !== "json" && !Number.isFinite(Number(entry))) throw new Error(`${called} is no number`);
  return isJson(entry) ? entry : `${Number(entry)}`;
}

/** The numbers of the choices that an entry holds. */
export function chosenIn(entry: string): number[] {
  return entry === "" ? [] : entry.split(",").map(Number);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
