// The gateway says which tools have a component (services/gateway/console/components.ts); its module is fetched when a question
// of the tool is first shown.

import type { Component } from "./contract.ts";

/** A module by its path, such as `/console/ui/confirm.js`. */
export type ModulePath = string;

const modulesByTool = new Map<string, Promise<ModulePath | undefined>>();

/** Undefined where the tool has none. What could not be asked is asked again the next time. */
export function findComponent(tool: string): Promise<ModulePath | undefined> {
  const known = modulesByTool.get(tool) ?? askFor(tool);
  modulesByTool.set(tool, known);
  return known;
}

async function askFor(tool: string): Promise<ModulePath | undefined> {
  try {
    const response = await fetch(`/console/ui.json?${new URLSearchParams({ tool })}`);
    if (!response.ok) return undefined;
    return ((await response.json()) as { module?: string }).module;
  } catch {
    modulesByTool.delete(tool);
    return undefined; // the plain form serves; that the suite is away is told by what needs it
  }
}

/** Throws what keeps the module from being used. */
export async function loadComponent(path: ModulePath): Promise<Component> {
  const { default: component } = await import(/* @vite-ignore */ path);
  if (typeof component !== "function") throw new TypeError("it exports no function by default");
  return component;
}
