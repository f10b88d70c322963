/** VitePress looks for its theme here: its own, in the reader's fonts. */
export { default } from "vitepress/theme-without-fonts";
