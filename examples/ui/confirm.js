// Draws the questions of the tool `confirm` in the console: docs/console-components.md of toolbus says how.

/** What is asked, with a button for each answer. Words of a model are set as text, and never as HTML. */
export default function confirm(question, element) {
  const asked = document.createElement("p");
  asked.textContent = question.arguments.question;
  const note = document.createElement("input");
  note.setAttribute("aria-label", "Note");
  note.placeholder = "for the agent";
  const answer = (approved) => question.answer({ approved, ...(note.value && { note: note.value }) });
  element.append(
    asked,
    note,
    button("approve", () => answer(true)),
    button("refuse", () => answer(false)),
  );
}

function button(label, onClick) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.addEventListener("click", onClick);
  return made;
}
