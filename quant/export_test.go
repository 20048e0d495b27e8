package quant

var PackScalesK4, PackScalesQ3K = packScalesK4, packScalesQ3K
