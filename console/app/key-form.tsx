import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault } from "../parts/notice.tsx";
import { place } from "../parts/place.ts";
import { heldKey, refusedKey, takeKey } from "../suite/connection.ts";
import { beginLogin, forgetLogin, loginFault, readLoginSettings } from "../suite/login/login.ts";
import type { LoginSettings } from "../suite/login/oauth.ts";

const focus = (input: HTMLElement | null): void => input?.focus();

/** Asks for a key, which this tab keeps until it is closed. */
export function KeyForm() {
  const text = useSignal("");
  const isOfOneQuestion = place.value.screen === "inbox" && place.value.id !== "";
  const enter = (event: Event) => {
    event.preventDefault();
    forgetLogin();
    takeKey(text.value.trim());
  };
  return (
    <main class="key" id="main">
      <h1>toolbus</h1>
      <LoginButton />
      <form class="form" onSubmit={enter}>
        <div class="field">
          <label for="key">Your key</label>
          <input
            id="key"
            ref={focus}
            type="password"
            autocomplete="current-password"
            required
            pattern="\s*[!-~]+\s*"
            title="A key has letters, digits and signs of ASCII, and no space within"
            aria-describedby="key-help"
            value={text.value}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
          <small id="key-help">
            {isOfOneQuestion ? (
              "Whoever sent you this address has one for you. "
            ) : (
              <>
                <code>toolbus up</code> made one at its first start: it is in <code>.toolbus/keys/local</code> of the
                project.{" "}
              </>
            )}
            This tab keeps it until it is closed.
          </small>
        </div>
        {heldKey() && <Fault text={refusedKey.value} />}
        <button type="submit" class="main">
          enter
        </button>
      </form>
    </main>
  );
}

/** Shown where the gateway takes tokens of an issuer, which people log in at. */
function LoginButton() {
  const settings = useSignal<LoginSettings>();
  useEffect(() => {
    void readLoginSettings().then((told) => {
      settings.value = told;
    });
  }, []);
  const { value } = settings;
  if (!value) return null;
  return (
    <div class="form">
      <button type="button" class="main" onClick={() => beginLogin(value)}>
        log in at {new URL(value.issuer).host}
      </button>
      <Fault text={loginFault.value} />
    </div>
  );
}
