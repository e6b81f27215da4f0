/**
 * The pinned parts of the generator that no lock file holds. The Go plugins are pinned in tools/gen/go.gen.yaml,
 * what the generated Go code needs in gen/go/go.mod, what the generated Python code needs in gen/python/pyproject.toml.
 */
export const versions = {
  protovalidate: "v1.2.2",
  grpcioTools: "1.85.1",
  mypyProtobuf: "5.1.0",
  mypy: "1.18.2",
  ruff: "0.17.6",
  hadolint: "2.15.1",
  checkJsonschema: "0.39.0",
  kubernetesValidate: "1.37.0",
  kustomize: "v5.7.1",
  keda: "v2.21.0",
  systemdlint: "1.4.0",
} as const;

export const goIsMissing =
  "Go (1.26 or newer) is needed to generate and check the contract, and is not on the PATH: install it from https://go.dev/dl";
