// Searches the site as its pages do, with the index and the search program of the site: node search.mjs SITE TERMS...
// Prints the addresses of the first hits, one line for each search.

import { readFileSync, readdirSync } from "node:fs";
import { createContext, runInContext } from "node:vm";

const [site, ...searches] = process.argv.slice(2);
const HITS = 10;
const names = readdirSync(site);
const script = (prefix) => readFileSync(`${site}/${names.find((name) => name.startsWith(prefix) && name.endsWith(".js"))}`, "utf8");
const page = { search: {} };
const context = createContext(Object.assign(page, { window: page }));
runInContext(script("elasticlunr"), context);
runInContext(script("searchindex"), context);
const { index, doc_urls: urls, search_options: options } = context.window.search;
const loaded = context.elasticlunr.Index.load(index);
for (const search of searches) {
  console.log(loaded.search(search, options).slice(0, HITS).map(({ ref }) => urls[ref]).join(" "));
}
