import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface ScreenProps {
  title: string;
  /** What belongs to the title: a state, a count. */
  aside?: ComponentChildren;
  /** What one does here. */
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Screen({ title, aside, actions, children }: ScreenProps) {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    // who has chosen a screen goes on in it
    if (document.activeElement?.closest("nav")) main.current?.focus();
  }, []);
  return (
    <main class="screen" id="main" tabIndex={-1} ref={main}>
      <header class="screen-head">
        <h1>{title}</h1>
        {aside}
        <div class="actions">{actions}</div>
      </header>
      {children}
    </main>
  );
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="section">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Names with what they stand for. */
export function Facts({ of }: { of: Readonly<Record<string, ComponentChildren>> }) {
  const told = Object.entries(of).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return (
    <dl class="facts">
      {told.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
