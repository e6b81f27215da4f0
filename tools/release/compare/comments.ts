import type {
  DescriptorProto,
  EnumDescriptorProto,
  FileDescriptorProto,
  ServiceDescriptorProto,
} from "@bufbuild/protobuf/wkt";

interface Place {
  readonly name: string;
  /** Where it stands, as source info counts: field number and index in turn. */
  readonly path: readonly number[];
}

/** The comment of each message, field, enum, value, service and method of a file, by its full name. */
export function commentsIn(file: FileDescriptorProto): Map<string, string> {
  const comments = new Map(
    file.sourceCodeInfo?.location.map(({ path, leadingComments, trailingComments }) => [
      path.join("."),
      `${leadingComments}\n${trailingComments}`,
    ]),
  );
  return new Map(
    placesIn(file).flatMap(({ name, path }) => {
      const comment = comments.get(path.join("."))?.trim() ?? "";
      return comment === "" ? [] : [[name, comment] as const];
    }),
  );
}

function placesIn(file: FileDescriptorProto): Place[] {
  const at = (number: number, index: number, name: string): Place => ({
    name: `${file.package}.${name}`,
    path: [number, index],
  });
  return [
    ...file.messageType.flatMap((message, index) => placesOfMessage(message, at(4, index, message.name))),
    ...file.enumType.flatMap((type, index) => placesOfEnum(type, at(5, index, type.name))),
    ...file.service.flatMap((service, index) => placesOfService(service, at(6, index, service.name))),
  ];
}

function placesOfMessage(message: DescriptorProto, place: Place): Place[] {
  return [
    place,
    ...message.field.map(({ name }, index) => below(place, 2, index, name)),
    ...message.nestedType.flatMap((nested, index) => placesOfMessage(nested, below(place, 3, index, nested.name))),
    ...message.enumType.flatMap((type, index) => placesOfEnum(type, below(place, 4, index, type.name))),
    ...message.oneofDecl.map(({ name }, index) => below(place, 8, index, name)),
  ];
}

function placesOfEnum(type: EnumDescriptorProto, place: Place): Place[] {
  return [place, ...type.value.map(({ name }, index) => below(place, 2, index, name))];
}

function placesOfService(service: ServiceDescriptorProto, place: Place): Place[] {
  return [place, ...service.method.map(({ name }, index) => below(place, 2, index, name))];
}

function below({ name, path }: Place, number: number, index: number, child: string): Place {
  return { name: `${name}.${child}`, path: [...path, number, index] };
}
