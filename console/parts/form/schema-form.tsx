import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useMemo } from "preact/hooks";
import { Fault } from "../notice.tsx";
import { answerFrom, chosenIn, type Field, fieldsFrom, initialEntries } from "./fields.ts";

interface SchemaFormProps {
  schemaJson: string;
  submitLabel: string;
  isBusy: boolean;
  onAnswer: (json: string) => void;
  /** What stands beside its button. */
  beside?: ComponentChildren;
}

/** Asks a person for what a schema describes. */
export function SchemaForm({ schemaJson, submitLabel, isBusy, onAnswer, beside }: SchemaFormProps) {
  const fields = useMemo(() => fieldsFrom(schemaJson), [schemaJson]);
  const entries = useSignal(initialEntries(fields));
  const fault = useSignal<string>();
  const submit = (event: Event) => {
    event.preventDefault();
    try {
      fault.value = undefined;
      onAnswer(answerFrom(fields, entries.value));
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  const set = (name: string, text: string) => {
    entries.value = { ...entries.value, [name]: text };
  };
  return (
    <form class="form" onSubmit={submit}>
      {fields.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          value={entries.value[field.name] ?? ""}
          onInput={(text) => set(field.name, text)}
        />
      ))}
      <Fault text={fault.value} />
      <div class="buttons">
        <button type="submit" class="main" disabled={isBusy}>
          {submitLabel}
        </button>
        {beside}
      </div>
    </form>
  );
}

interface FieldInputProps {
  field: Field;
  value: string;
  onInput: (text: string) => void;
}

function FieldInput(props: FieldInputProps) {
  const { field, value, onInput } = props;
  const id = useId();
  if (field.kind === "yes-no") return <YesNo {...props} />;
  if (field.kind === "choices") return <Several {...props} />;
  const common = {
    id,
    value,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
    ...(field.help && { "aria-describedby": `${id}-help` }),
  };
  return (
    <div class="field">
      <label for={id}>
        {field.title || "Answer"}
        {!field.isRequired && <span class="quiet"> (may be left out)</span>}
      </label>
      <Input field={field} common={common} />
      {field.help && <small id={`${id}-help`}>{field.help}</small>}
    </div>
  );
}

function YesNo({ field, value, onInput }: FieldInputProps) {
  const id = useId();
  return (
    <fieldset class="field">
      <legend>{field.title || "Answer"}</legend>
      {["true", "false"].map((entry) => (
        <label key={entry}>
          <input type="radio" name={id} checked={value === entry} onChange={() => onInput(entry)} />{" "}
          {entry === "true" ? "yes" : "no"}
        </label>
      ))}
      {field.help && <small>{field.help}</small>}
    </fieldset>
  );
}

function Several({ field, value, onInput }: FieldInputProps) {
  const chosen = chosenIn(value);
  const toggle = (at: number) =>
    onInput((chosen.includes(at) ? chosen.filter((index) => index !== at) : [...chosen, at]).join());
  return (
    <fieldset class="field">
      <legend>
        {field.title || "Answer"}
        {!field.isRequired && <span class="quiet"> (may be left out)</span>}
      </legend>
      {field.labels.map((label, index) => (
        <label key={String(index)}>
          <input type="checkbox" checked={chosen.includes(index)} onChange={() => toggle(index)} /> {label}
        </label>
      ))}
      {chosen.length > 1 && <small>in this order: {chosen.map((index) => field.labels[index]).join(", ")}</small>}
      {field.help && <small>{field.help}</small>}
    </fieldset>
  );
}

function Input({ field, common }: { field: Field; common: Record<string, unknown> }) {
  switch (field.kind) {
    case "choice":
      return (
        <select {...common}>
          <option value="">…</option>
          {field.labels.map((label, index) => (
            <option key={String(index)} value={`${index}`}>
              {label}
            </option>
          ))}
        </select>
      );
    case "number":
    case "integer":
      return <input {...common} type="number" step={field.kind === "integer" ? 1 : "any"} />;
    case "text":
      return <input {...common} type="text" />;
    case "long-text":
      return <textarea {...common} rows={2} />;
    case "json":
      return <textarea {...common} rows={4} class="mono" placeholder="JSON" spellcheck={false} />;
  }
}
