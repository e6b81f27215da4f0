/**
 * Node 24 before 24.22.1 and 26 before 26.12 have a V8 that reads a name of JSON that ends with an escape as another one that was read
 * before, in the same place of any other text: `{"id":1,"caf\u00e9":1}` has a member `caf\` once somebody has sent `{"id":1,"caf\\":1}`
 * (Chromium issue 521080746, nodejs/node#63785). Undefined, or what to tell of this Node.
 */
export function faultOfNode(): string | undefined {
  JSON.parse('{"faultOfNode":0,"\\\\":0}');
  const read = JSON.parse('{"faultOfNode":0,"\\n":0}');
  if ("\n" in read) return undefined;
  return (
    `Node ${process.version} confuses names in JSON, so that one caller can change what another sends: ` +
    "use 24.22.1 or later, or 26.12 or later (nodejs/node#63785)"
  );
}
