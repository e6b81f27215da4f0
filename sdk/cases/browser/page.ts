// What the page does that Chromium opens: it waits to be told which cases to play, at which suite.

import { createToolbus } from "toolbus";
import { playCases } from "../typescript/cases.ts";

export type PlayInPage = (file: string, options: { url: string; apiKey: string }) => Promise<number>;

const playInPage: PlayInPage = (file, options) => playCases(file, createToolbus(options), console.log);

Object.assign(globalThis, { playInPage });
