const MODULE_FILE = /^[A-Za-z0-9][A-Za-z0-9_-]*\.(ts|mts|js|mjs)$/;

/** Files that can be hosted modules; those with another dot or a `_` before their name are left to the modules that import them. */
export function isModuleFileName(name: string): boolean {
  return MODULE_FILE.test(name);
}

/** The source that a module is by itself: its name without the ending. */
export function sourceFromModuleFile(file: string): string {
  return file.replace(/\.(ts|mts|js|mjs)$/, "");
}
