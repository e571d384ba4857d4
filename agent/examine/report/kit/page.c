/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every page has: head, style, sections.
 */
#include "agent/examine/report/kit/page.h"

#include "agent/examine/report/kit/svg.h"

/* Colours are those of the figures (svg_style). */
static const char page_style[] =
	"*{box-sizing:border-box}"
	"html{scroll-behavior:smooth}"
	"body{margin:0;background:var(--bg);color:var(--ink);"
	"font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
	"header,main,footer{max-width:64rem;margin:0 auto;padding:0 1.25rem}"
	"header{padding-top:2rem}"
	"h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}"
	"h2{font-size:1.3rem;margin:0 0 .5rem}h3{font-size:1.1rem;margin:0 0 .35rem}"
	"h4{font-size:1rem;margin:1.25rem 0 .35rem}"
	"section{margin:2rem 0;padding-top:1.25rem;border-top:1px solid var(--grid)}"
	"section.part{margin:1.75rem 0;padding:0;border:0}"
	"p{margin:.4rem 0;max-width:48rem}.soft,caption,figcaption{color:var(--soft)}"
	"p,caption,figcaption,dd{overflow-wrap:anywhere}"
	"a{color:var(--link)}a.term{text-decoration-style:dotted;text-underline-offset:.2em}"
	"th a.term,.card a.term,figcaption a.term{color:inherit}"
	"bdi{unicode-bidi:isolate}ul.plain{margin:0;padding:0;list-style:none}"
	/* What is judged: sign, word and colour. */
	".good{color:var(--good)}.fair{color:var(--fair)}.bad{color:var(--bad)}"
	".judged{font-weight:600}"
	".outcome{border-left:6px solid;background:var(--panel);padding:.8rem 1.1rem;"
	"margin:1.25rem 0 0}"
	".outcome p{color:var(--ink);margin:.2rem 0}"
	".outcome .headline{font-size:1.75rem;line-height:1.25;margin:0 0 .3rem}"
	".outcome .finding{font-size:1.25rem;margin:0 0 .5rem}"
	".outcome .finding .judged{font-size:1.75rem;line-height:1.25}"
	".outcome .finding~.headline{font-size:1.25rem}"
	".outcome .headline .judged{font-weight:700}"
	".verdict{font-size:1.1rem;margin:1rem 0 .3rem}"
	".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.75rem;"
	"margin:.75rem 0 0}"
	".card{background:var(--panel);border:1px solid var(--grid);border-radius:.4rem;"
	"padding:.6rem .8rem}"
	".card b{display:block;font-size:1.35rem;line-height:1.3;overflow-wrap:anywhere}"
	".card>span{display:block;font-size:.85rem;color:var(--soft)}"
	".card .why{margin-top:.25rem;color:var(--ink)}"
	"nav{display:flex;flex-wrap:wrap;gap:.15rem 1.25rem;margin:1.1rem 0 0;font-size:.95rem}"
	/* Tables. */
	".scroll{overflow-x:auto;margin:.6rem 0}"
	"table{border-collapse:collapse;font-size:.9rem}"
	"caption{text-align:left;font-size:.85rem;padding-bottom:.25rem}"
	"th,td{padding:.22rem .7rem .22rem 0;text-align:left;vertical-align:top;"
	"border-bottom:1px solid var(--grid)}"
	"th:last-child,td:last-child{padding-right:0}.rows thead th{overflow-wrap:anywhere}"
	"th{font-weight:600}thead th{border-bottom-color:var(--edge);vertical-align:bottom}"
	".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	"th.n{white-space:normal}"
	"tbody th{font-weight:400;color:var(--soft)}.rows tbody th{color:inherit}"
	"tr.sum>*{border-top:1px solid var(--edge);font-weight:600;color:inherit}"
	".share{color:var(--soft);display:inline-block;min-width:4.2em}"
	".facts th{white-space:nowrap}"
	".mono{font:.85rem/1.5 ui-monospace,'DejaVu Sans Mono',Consolas,monospace;"
	"overflow-wrap:anywhere}"
	".wrap{overflow-wrap:anywhere}td.wrap{min-width:8rem}.kind,.whole{white-space:nowrap}"
	/* Where there is room, words of ours and addresses stay whole. */
	"@media screen and (min-width:60rem){.rows thead a.term{overflow-wrap:break-word}"
	".rows tbody th.wrap{min-width:6.5rem}.rows td.address{white-space:nowrap}}"
	/* A fold is closed on small screens only, where the browser can open it for the style. */
	"@supports selector(::details-content){@media print,(min-width:48.01rem){"
	"details.fold::details-content{content-visibility:visible;block-size:auto}"
	"details.fold>summary{display:none}}}"
	/* Figures: each is there twice. */
	"figure{margin:.75rem 0}svg.fig{display:block;height:auto;width:100%}"
	"svg.narrow{display:none;max-width:30rem}"
	"svg.defs{position:absolute;width:0;height:0}"
	"figcaption{font-size:.85rem;max-width:48rem;margin-top:.25rem}"
	"dl{margin:0}@media screen and (min-width:60rem){dl{columns:2;column-gap:2rem}"
	"dd{break-inside:avoid}dt{break-after:avoid}}"
	"details{margin:.6rem 0}summary{cursor:pointer;color:var(--link);font-size:.9rem}"
	"dt{font-weight:600;margin-top:.6rem;scroll-margin-top:1rem}"
	"dd{margin:0;max-width:48rem}:target{background:var(--panel);"
	"outline:2px solid var(--s1);outline-offset:2px}"
	"footer{color:var(--soft);font-size:.85rem;padding-bottom:2rem}"
	/* A row becomes a block: its first cell is the heading. */
	"@media screen and (max-width:48rem){"
	"svg.wide{display:none}svg.narrow{display:block}"
	".scroll{overflow:visible}section{margin:1.5rem 0;padding-top:1rem}"
	".rows,.rows caption,.rows tbody,.rows tr,.rows th,.rows td{display:block}"
	".rows thead,.rows td:empty{display:none}"
	".rows tr{padding:.45rem 0;border-bottom:1px solid var(--grid)}"
	".rows th,.rows td,.rows tr.sum>*{border:0;padding:.08rem 0}"
	".rows tbody th{font-weight:600;overflow-wrap:anywhere}"
	".rows td[data-column]{display:flex;justify-content:space-between;gap:1rem;"
	"text-align:right;min-width:0}"
	".rows td[data-column]::before{content:attr(data-column);color:var(--soft);"
	"text-align:left;flex:none;font:.9rem/1.5 system-ui,-apple-system,'Segoe UI',Roboto,"
	"'DejaVu Sans',sans-serif;max-width:55%;white-space:normal;overflow-wrap:anywhere}"
	".rows td.wrap,.rows td.mono{display:block;text-align:left}"
	".rows td.wrap::before,.rows td.mono::before{display:block;max-width:none}"
	".rows td.n br{display:none}.rows td.n .soft,.rows td.n .judged{margin-left:.5em}"
	".rows td.spread br{display:inline}"
	/* What a row of a brief table says is one paragraph. */
	".brief .rows td,.brief .rows "
	"td[data-column]{display:inline;text-align:left;font-size:.9rem}"
	".brief .rows tbody th{display:inline;padding-right:.4rem}"
	".brief .rows td::before,.brief .rows td:empty{display:none}"
	".brief .rows td+td::before,.brief .rows td.n::before{display:inline;content:\" · \";"
	"max-width:none}"
	".brief .rows td:last-child::before{content:\" · \" attr(data-column) \": \"}"
	".brief .rows tr{padding:.25rem 0}"
	".brief .rows td.n::before{content:\" · \" attr(data-column) \" \"}"
	".card.first{grid-column:1/-1}.whole,.facts th{white-space:normal}}"
	/* On paper no figure is so high that half a page before it stays empty. */
	"@media print{body{font-size:9.5pt}header,main,footer{max-width:none;"
	"padding:0}nav{display:none}section{break-inside:auto;margin:1.4rem 0}"
	"figure,.card,.outcome,tr,dd{break-inside:avoid}svg.fig{max-height:88mm}"
	"h2,h3,h4,caption,summary,thead,dt{break-after:avoid}.scroll{overflow:visible}"
	".cards{grid-template-columns:repeat(auto-fit,minmax(8rem,1fr))}.slim{columns:3}"
	".rows thead a.term{overflow-wrap:break-word}"
	"dl{columns:2;column-gap:1.5rem;font-size:8.5pt}p,dd,figcaption{orphans:3;widows:3}"
	".rows tbody th.wrap{min-width:6.5rem}.rows td.address{white-space:nowrap}"
	"a{color:inherit;text-decoration:none}"
	"*{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
	"details::details-content{content-visibility:visible;block-size:auto}"
	"summary{color:var(--soft)}table{font-size:8pt}.mono{font-size:7.5pt}th,td{padding-right:."
	"5rem}}";

/* Margin boxes: CSS Paged Media Module Level 3, section 4.2. Other browsers leave them out. */
static void put_foot(struct doc *d, const char *foot)
{
	doc_printf(d,
		   "@page{margin:14mm 14mm 18mm;@bottom-left{content:\"%s\";font:7.5pt "
		   "ui-monospace,'DejaVu Sans Mono',Consolas,monospace;color:#555c66}"
		   "@bottom-right{content:counter(page) \" / \" counter(pages);font:8pt "
		   "system-ui,'DejaVu Sans',sans-serif;color:#555c66}}",
		   foot ? foot : "");
}

void page_foot_of_container(const struct rsz_scan_result *end, char ret[static PAGE_FOOT_MAX])
{
	char root[SHA256_HEX_SIZE];

	sha256_hex(end->root, root);
	snprintf(ret, PAGE_FOOT_MAX, "%s %s",
		 end->end == RSZ_END_SEALED ? "root" : "not whole; root so far", root);
}

void page_begin(struct doc *d, const char *title, const char *of, const char *foot)
{
	doc_put(d,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"generator\" content=\"ramseal " RAMSEAL_VERSION "\">\n"
		"<link rel=\"icon\" href=\"data:,\">\n<title>");
	doc_put(d, title);
	doc_put(d, of ? " of " : "");
	doc_text_cut(d, of, 100);
	doc_printf(d, "</title>\n<style>%s\n%s\n", svg_style, page_style);
	put_foot(d, foot);
	doc_put(d, "</style>\n</head>\n<body>\n");
	doc_put(d, "<svg class=\"defs\" aria-hidden=\"true\">");
	svg_patterns(d);
	doc_put(d, "</svg>\n");
}

void page_end(struct doc *d)
{
	doc_put(d, "</main>\n<footer><p>Made by ramseal " RAMSEAL_VERSION
		   ". This page holds everything it shows: it loads nothing and runs "
		   "nothing.</p></footer>\n</body>\n</html>\n");
}

void page_section(struct doc *d, const char *id, const char *title)
{
	doc_printf(d, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void page_part(struct doc *d, const char *id, const char *title)
{
	doc_printf(d, "<section class=\"part\" id=\"%s\">\n<h3>%s</h3>\n", id, title);
}

void page_section_end(struct doc *d)
{
	doc_put(d, "</section>\n");
}
