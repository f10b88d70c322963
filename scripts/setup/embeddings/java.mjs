export function javaSteps() {
  return [];
}
