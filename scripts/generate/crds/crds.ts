/** The CustomResourceDefinitions of Berth's own kinds, out of the schemas that decode them. */

import { stringify } from "yaml";
import { MAX_NAME_LENGTH } from "../../../host/config/fields/names.ts";
import type { CustomKind } from "../../../host/resources/custom-kind.ts";
import { API_VERSION } from "../../../host/resources/fields/metadata.ts";
import type { GeneratedText } from "../generated-text.ts";
import { CUSTOM_KINDS } from "./custom-kinds.ts";
import { structuralSchema } from "./structural-schema.ts";

const [GROUP = "", VERSION = ""] = API_VERSION.split("/");

/** Helm installs the definitions unchanged: nothing here may depend on the release. */
const LABELS = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/part-of": "berth" };

const TYPE_FIELDS = {
  apiVersion: { description: `\`${API_VERSION}\`.`, type: "string" },
  kind: { description: "The kind's name.", type: "string" },
  metadata: { type: "object", properties: { name: { type: "string", maxLength: MAX_NAME_LENGTH } } },
};

function openApiSchema(custom: CustomKind): object {
  const { description, spec, specDescription, rules, status, statusDescription } = custom;
  const properties = {
    ...TYPE_FIELDS,
    ...(spec === undefined ? {} : { spec: { ...structuralSchema(spec), description: specDescription } }),
    ...(status === undefined ? {} : { status: { ...structuralSchema(status), description: statusDescription } }),
  };
  const validations = rules === undefined ? {} : { "x-kubernetes-validations": rules };
  return {
    description,
    type: "object",
    required: [spec === undefined ? "status" : "spec"],
    properties,
    ...validations,
  };
}

function crdOf(custom: CustomKind): object {
  const { kind, plural, shortNames, spec, status, columns, selectableFields } = custom;
  const hasStatusApart = spec !== undefined && status !== undefined;
  const version = {
    name: VERSION,
    served: true,
    storage: true,
    ...(hasStatusApart ? { subresources: { status: {} } } : {}),
    ...(selectableFields === undefined ? {} : { selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })) }),
    additionalPrinterColumns: columns,
    schema: { openAPIV3Schema: openApiSchema(custom) },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}`, labels: LABELS },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), shortNames, categories: ["berth"] },
      versions: [version],
    },
  };
}

/** The files of deploy/crds. */
export function crdFiles(): GeneratedText[] {
  return CUSTOM_KINDS.map((custom) => ({
    path: `deploy/crds/${custom.plural}.yaml`,
    text: stringify(crdOf(custom), { lineWidth: 140, aliasDuplicateObjects: false }),
  }));
}
