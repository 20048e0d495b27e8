package exec

import (
	"context"

	"github.com/wavelane/wavelane/batch"
)

func runPlan(ctx context.Context, p *batch.Plan) error { return p.Start().AwaitOrAbandon(ctx) }
