/** The raw layer of the Python embedding: enumerations, ceilings, offsets, and a class with a method per export. */
import type { GeneratedText } from "../generated-text.ts";
import { type Binding, type Call, type Constant, prefixed } from "./binding.ts";

const assignment = ({ name, value, doc }: Constant) => `# ${doc}\n${name} = ${value}\n`;

const enumeration = (name: string, doc: string, members: readonly Constant[]) => `
class ${name}(IntEnum):
    """${doc}"""

${members.map((member) => prefixed("    ", assignment(member).trimEnd().split("\n"))).join("")}`;

const method = ({ name, doc, facts, params }: Call) => `
    def ${name}(${["self", ...params.map((param) => `${param.name}: int`)].join(", ")}) -> int:
        """
${prefixed("        ", [doc, ...facts])}        """
        return self.invoke(${[`"${name}"`, ...params.map((param) => param.name)].join(", ")})
`;

export function renderPythonBindings({ version, statuses, policies, ceilings, counts, calls }: Binding): GeneratedText {
  const text = `
from abc import ABC, abstractmethod
from enum import IntEnum

# The version of the ABI that this module speaks.
ABI_MAJOR, ABI_MINOR = ${version.major}, ${version.minor}

# The most parameters, or results, of a call.
MOST_PARAMETERS = ${Math.max(1, ...calls.map(({ params }) => params.length))}

# Ceilings of one core.
${ceilings.map(assignment).join("")}
${enumeration("Status", "Results of an export below 0.", statuses)}
${enumeration("Policy", "Which free address of the window is next.", policies)}
${enumeration("CountsAt", "Places of the counts of pool_counts.", counts)}
STATUS_TEXTS = {
${statuses.map(({ name, doc }) => `    Status.${name}: ${JSON.stringify(doc)},\n`).join("")}}


class CoreError(Exception):
    """A refusal: the export of the core that refused, and its status."""

    def __init__(self, operation: str, status: int) -> None:
        self.operation = operation
        self.status = Status(status)
        text = f"{self.status.name} ({status}): {STATUS_TEXTS[self.status]}"
        super().__init__(f"{operation} refused with {text}")


class Exports(ABC):
    """The exports of the core. A result below 0 is a CoreError, but for call()."""

    @abstractmethod
    def invoke(self, name: str, *args: int) -> int:
        """Calls an export."""

    def call(self, name: str, *args: int) -> int:
        """Calls the method of that name. A result below 0 is a Status."""
        try:
            result: int = getattr(self, name)(*args)
            return result
        except CoreError as refusal:
            return refusal.status

    def find(self, absent: Status, name: str, *args: int) -> "int | None":
        """The same; None in the place of one status, and a CoreError for others."""
        try:
            return self.invoke(name, *args)
        except CoreError as refusal:
            if refusal.status != absent:
                raise
            return None
${calls.map(method).join("")}`;
  return { path: "embeddings/python/src/berth_core/raw.py", text };
}
