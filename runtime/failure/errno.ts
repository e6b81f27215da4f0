/** Whether an error is the system's, with this code: `ENOENT`, `EEXIST`. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** Takes the failure for nothing if a file does not exist; throws any other. */
export function unlessAbsent(error: unknown): undefined {
  if (!isErrno(error, "ENOENT")) throw error;
}
