// Commands for what pi's RPC mode has no words for.
export default function (pi: any) {
	pi.registerCommand("reload-now", { description: "reload", handler: async (_: string, ctx: any) => void (await ctx.reload()) });
}
